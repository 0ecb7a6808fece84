"""What happens to a collector from outside: killed, out of space, locked out, its file changed; and what is left afterwards."""
