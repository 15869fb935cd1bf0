"""The commands around a saved advisor, a file each; ``edfa.cli`` puts them on the command line."""
