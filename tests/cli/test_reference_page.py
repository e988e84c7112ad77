from tests.support.golden import Golden
from tests.support.reference_page import reference_page


def test_the_page_of_the_documentation_is_what_is_declared(golden: Golden) -> None:
    golden.check("../../docs/commands.md", reference_page())
