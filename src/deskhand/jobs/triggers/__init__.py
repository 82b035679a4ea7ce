"""What sets jobs off beside a time: files, pages, conversations that end, webhooks, messages of a
broker."""
