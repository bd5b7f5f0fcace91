"""What may be said aloud, and how. What is worth remembering, and what nobody wants remembered, will be judged here."""
