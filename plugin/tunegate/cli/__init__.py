"""The command line: `commands/` declares commands, `handlers/` carries them out."""
