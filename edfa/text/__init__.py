"""Everything said to people: sentences by language, and the HTML around them."""
