"""Web Push: notifications in browsers, also with the page closed."""
