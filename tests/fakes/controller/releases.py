"""Since when the brokers and their controller do what only the played cluster shows."""

from topicops.model.release import Release

KEEPS_LAST_IN_ISR = Release(1, 1)
"""The last replica stays in the ISR when it dies, with unclean elections too. Source: KafkaController and
kafka.controller.ReplicaStateMachine, 1.0.2 and 1.1.1.
"""
RESTORES_ROWS = Release(2, 0)
"""A topic that is being deleted gets its rows back when its znode changes. Source: KafkaController, 1.1.1 and 2.0.1."""
REPEATS_ELECTIONS = Release(1, 1)
"""A preferred election elects the leader again that leads already. Source: KafkaController, 1.1.1 to 2.1.1; in 1.0.2
kafka.controller.PreferredReplicaPartitionLeaderSelector refuses.
"""
LEAVES_LEADERS = Release(2, 2)
"""An election leaves alone what is led as it wants, and may be asked for by a request (KIP-183)."""
KNOWS_BOUNCED_BROKERS = Release(2, 2)
"""The controller notices a broker that restarts between two reads. Source: kafka.controller.KafkaController."""
DEAD_REPLICAS_INELIGIBLE = Release(2, 3)
"""OfflineReplica to ReplicaDeletionIneligible is valid. Source: kafka.controller.ReplicaState, 2.2.2 and 2.3.1."""
SHRINKS_AT_FAILOVER = Release(2, 3)
"""A new controller takes dead brokers out of ISRs. Source: kafka.controller.ReplicaStateMachine#startup."""
ELECTS_WHEN_ALLOWED = Release(2, 1)
"""A topic gets unclean leaders as soon as its config allows them (KAFKA-6835); before, at the next election.

Source: kafka.controller.KafkaController$TopicUncleanLeaderElectionEnable, which 2.0.1 lacks and 2.1.1 has.
"""
CHECKS_IDS = Release(2, 3)
"""Brokers create no topic whose partitions are not numbered from 0. Source: kafka.zk.AdminZkClient, 2.2.2 and 2.3.1."""
CONFIGURES_KNOWN = Release(2, 6)
"""Brokers configure no topic that is being deleted: their metadata does not have it.

Source: kafka.server.AdminManager#alterTopicConfigs, 2.5.1 and 2.6.3.
"""
ALTERS_ISRS = Release(2, 7)
"""Protocol. Leaders ask the controller to change an ISR (KIP-497); before, they write the state themselves.

Source: kafka.controller.KafkaController#processAlterIsr, which 2.6.3 lacks and 2.7.2 has.
"""
