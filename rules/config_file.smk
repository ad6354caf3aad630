# Says in one line what is wrong with config.yaml, which Snakemake would answer with a traceback.
# Stands before `configfile:`; makes nothing.
import sys
from pathlib import Path

sys.path.insert(0, f"{workflow.basedir}/scripts")

from stepscope.config import config_file, snakemake_internals

CONFIG_FILE = Path(workflow.basedir) / "config.yaml"
if CONFIG_FILE.exists() or not snakemake_internals.given_files(workflow):
    if complaint := config_file.unreadable(CONFIG_FILE):
        sys.exit(complaint)
