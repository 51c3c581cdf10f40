"""What each kernel means: its problems, the cases to verify, and the oracle. numpy only."""
