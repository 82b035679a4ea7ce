"""One hundred everyday requests for an agent with a small model, each checked by what is true
afterwards."""
