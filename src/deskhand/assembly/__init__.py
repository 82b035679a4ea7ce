"""Makes an agent from the settings: models, prompt, tools, judge, chat commands."""
