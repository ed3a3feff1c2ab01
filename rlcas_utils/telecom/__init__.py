"""The telecom side: tau2-bench tasks, customers, prompt, scoring and the small model trained on them."""
