from tunegate.redaction import redact, redact_word, secrets_of
from tunegate.wording import did_you_mean, plural


def test_the_word_that_looks_most_like_it_is_asked_for() -> None:
    assert did_you_mean("modle", ["target", "model"], "Remove it.") == "Did you mean model?"


def test_without_a_word_that_looks_like_it_something_else_is_said() -> None:
    assert did_you_mean("x", ["target", "model"], "Remove it.") == "Remove it."
    assert did_you_mean("x", [], "Remove it.") == "Remove it."


def test_one_is_alone_and_thousands_are_grouped() -> None:
    expected = ["0 tasks", "1 task", "2 tasks", "3,000 tasks"]
    assert [plural(n, "task") for n in (0, 1, 2, 3000)] == expected
    assert plural(2, "entry", "entries") == "2 entries"


def test_values_of_variables_named_like_a_secret_are_secrets() -> None:
    variables = {
        "MY_TOKEN": "abcdefgh",
        "HOME": "/home/me",
        "API_KEY": "short",
        "x_password": "ab cd ef",
    }
    assert set(secrets_of(variables)) == {"abcdefgh", "ab cd ef"}


def test_the_key_of_a_step_is_its_name_and_no_secret() -> None:
    job = {"SOME_STEP_KEY": "tunegate", "SOME_AGENT_ACCESS_TOKEN": "0123456789"}
    assert secrets_of(job) == ("0123456789",)


def test_a_secret_of_several_lines_is_one_in_each_line() -> None:
    secrets = secrets_of({"SIGNING_KEY": "first line\nsecond line\n"})
    assert redact("the second line is told", secrets) == "the *** is told"


def test_the_longer_secret_goes_first() -> None:
    assert redact("abcdefghi", secrets_of({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefghi"})) == "***"


def test_what_stands_before_a_host_is_left_out() -> None:
    found = redact("s3://me:pass@host/x and https:/me@host", ())
    assert found == "s3://***@host/x and https:/***@host"


def test_a_password_may_have_the_sign_that_ends_it() -> None:
    assert redact("s3://me:p@ss@host/b", ()) == "s3://***@host/b"


def test_signatures_in_an_address_are_left_out() -> None:
    address = "https://host/m?v=2&X-Amz-Signature=abc&sig=d%2Fe"
    assert redact(address, ()) == "https://host/m?v=2&X-Amz-Signature=***&sig=***"
    assert redact_word(f"--base={address}&st=f", ()) == "--base=https://host/m?***"
    link = "https://host/browse?selectedIssue=ACME-123456789012345); the"
    assert redact(link, ()) == link
    assert redact("?sig" * 20_000, ()) == "?sig" * 20_000  # a long name costs no minutes


def test_an_alias_of_a_model_is_no_user_of_a_host() -> None:
    assert redact("models:/asr@live: gone", ()) == "models:/asr@live: gone"
    assert redact("models://me:pw@host", ()) == "models://***@host"
