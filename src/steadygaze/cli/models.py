"""`steadygaze models`: the bundled networks as a table."""

from rich import box
from rich.console import Console
from rich.table import Table

from .. import zoo


def models() -> int:
    """List the bundled networks: neurons, accuracy, training."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("name", "dataset", "layers"):
        table.add_column(title, no_wrap=title == "name")
    table.add_column("neurons", justify="right")
    table.add_column("accuracy", justify="right")
    table.add_column("training")
    for model in zoo.models():
        accuracy = f"{100.0 * model.accuracy:.2f} %"
        table.add_row(model.name, model.dataset, model.layers, f"{model.neurons:,}", accuracy, model.training)
    console = Console()
    if not console.is_terminal:
        console.width = 140  # whole rows for whatever reads them
    console.print(table)
    references = [image.reference for image in zoo.images()]
    datasets = dict.fromkeys(reference.partition(":")[0] for reference in references)
    ranges = [[name for name in references if name.startswith(f"{dataset}:")] for dataset in datasets]
    console.print("Bundled images: " + ", ".join(f"{own[0]} to {own[-1]}" for own in ranges), highlight=False)
    return 0
