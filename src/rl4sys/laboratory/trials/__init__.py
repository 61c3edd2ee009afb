"""Trials: experiments that are variations of one base, trained in processes of their own."""
