"""Who may call: tokens, sessions and quotas."""
