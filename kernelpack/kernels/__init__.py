"""Each kernel's definition: its problems, the cases to verify, and the oracle. numpy only."""
