"""The verdict for people and programs: terminal, comment, HTML, SARIF, JUnit, history."""
