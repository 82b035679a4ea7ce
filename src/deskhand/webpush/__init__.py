"""Web Push: browsers are told what waits for somebody, also with the page closed."""
