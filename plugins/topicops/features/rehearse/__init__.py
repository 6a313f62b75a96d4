"""Rehearse: play a plan, and the loss of brokers, on the controller's model, before anything is sent."""
