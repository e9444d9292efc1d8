"""What goes over the wire: messages, addresses, channels, statuses and retries."""
