"""Recording on Windows, proven without Windows: declarations against headers, sessions against libraries that play Windows."""
