import subprocess
import sys

HEAVY = ("torch", "pydantic", "ray", "omegaconf", "gymnasium")


def test_the_client_core_imports_no_training_libraries() -> None:
    program = (
        "import sys, rl4sys, rl4sys.experience, rl4sys.weights, rl4sys.policy;"
        f"print(*sorted(sys.modules.keys() & set({HEAVY!r})))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
