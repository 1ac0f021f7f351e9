"""Compound networks of the bundled models and images."""

from steadygaze.compound import Compound
from steadygaze.images import read_image
from steadygaze.network.model import read_model
from steadygaze.perturbation import compose, parse_spec
from steadygaze.zoo import image_path, model_path


def bundled(name: str, reference: str, *specs: str) -> Compound:
    model = read_model(model_path(name))
    perturbed = compose([parse_spec(spec) for spec in specs], read_image(image_path(reference)).pixels)
    return Compound(model.graph, model.chain, perturbed)
