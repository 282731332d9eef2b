"""Says how: settings, prompts and phrases. Knows nobody."""
