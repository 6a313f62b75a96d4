"""A cluster in virtual time: ZooKeeper's znodes, the controller's model and brokers, played from one seed.

Everything that takes time waits in one queue, and whoever asks the cluster lets time pass. One seed plays one story.
Imports ``controller`` and ``model``.
"""
