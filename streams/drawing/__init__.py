"""Pictures and pages, all by one hand: matplotlib draws, Jinja2 writes (extra `report`)."""
