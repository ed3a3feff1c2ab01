"""SAC-Discrete from scratch: losses, networks, replay buffer, training loop and the agent it yields."""
