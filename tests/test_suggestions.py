from __future__ import annotations

from rl4sys.suggestions import did_you_mean, did_you_mean_one_of, nearest


def test_a_misspelt_word_gets_the_nearest_known_one_whatever_its_case() -> None:
    assert nearest("PP0", ["dqn", "ppo"]) == "ppo"
    assert did_you_mean("Cartpole-v1", ["CartPole-v1", "Pendulum-v1"]) == "; did you mean 'CartPole-v1'?"


def test_an_abbreviation_and_its_long_form_suggest_each_other() -> None:
    assert nearest("learning_rate", ["gamma", "lr", "critic_lr"]) == "lr"
    assert nearest("nse", ["gamma", "num_steps_each"]) == "num_steps_each"


def test_a_word_unlike_any_known_one_gets_no_suggestion() -> None:
    assert nearest("zebra", ["dqn", "ppo"]) is None
    assert did_you_mean("zebra", ["dqn", "ppo"]) == did_you_mean_one_of("zebra", ["dqn", "ppo"]) == ""


def test_up_to_three_similar_names_are_suggested_the_nearest_first() -> None:
    names = ["ppo-cartpole", "ppo-cartpole-2", "ppo-cartpole-34", "ppo-cartpole-567", "x"]
    assert (
        did_you_mean_one_of("ppo-cartpol", names) == "Did you mean ppo-cartpole or ppo-cartpole-2 or ppo-cartpole-34?"
    )


def test_words_that_share_only_some_letters_are_not_suggested() -> None:
    assert nearest("verbose", ["videos", "gamma"]) is None
    assert nearest("train_freq", ["tracking_uri", "epochs"]) is None
    assert nearest("target_update_interval", ["target_entropy", "polyak"]) is None
