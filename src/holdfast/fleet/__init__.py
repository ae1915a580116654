"""Several ranks of one job: who they are, how each fared, who stopped first. Knows windows and events, no journal and no clock."""
