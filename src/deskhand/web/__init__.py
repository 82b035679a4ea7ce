"""HTTP, WebSockets, server-sent events and the page: thin translations of the Door."""
