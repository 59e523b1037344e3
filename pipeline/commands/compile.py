"""The command `compile`: writes the pipeline as a file for Kubeflow Pipelines v2."""

import argparse
import os

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError
from pipeline.recipes import loading


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("compile", help="write the pipeline for Kubeflow Pipelines v2")
    arguments.add_recipe_arguments(parser)
    parser.add_argument("--output", required=True, metavar="FILE", help="pipeline.yaml")
    parser.add_argument(
        "--data",
        default="gs://your-bucket/data",
        metavar="PATH",
        help="the data, as the cluster sees them",
    )
    parser.add_argument("--pipeline-root", default="gs://your-bucket/verbatim", metavar="PATH")
    parser.add_argument(
        "--image", default="verbatim-text:latest", help="container image of all components"
    )
    parser.add_argument(
        "--component-image",
        action="append",
        default=[],
        metavar="ID=IMAGE",
        help="another image for one component; repeatable",
    )
    parser.add_argument(
        "--trainer-gpus",
        type=int,
        default=1,
        metavar="N",
        help="GPUs of each Trainer and of the Tuner; 0 for none (default: 1)",
    )
    parser.add_argument(
        "--gpu-type",
        default="nvidia.com/gpu",
        metavar="NAME",
        help="the cluster's name for a GPU",
    )
    parser.add_argument(
        "--resources",
        action="append",
        default=[],
        metavar="ID=LIMITS",
        help="what a component may use, such as Trainer=cpu:8,memory:32 (GB); repeatable",
    )
    parser.add_argument(
        "--retries",
        type=int,
        default=2,
        metavar="N",
        help="how often to retry a failed task (default: 2); a training resumes",
    )
    parser.add_argument("--no-cache", action="store_true", help="ignore cached results")
    parser.add_argument(
        "--data-parameter",
        action="store_true",
        help="make the data folder a parameter of the pipeline, set when a run starts",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="PLACE=SECRET",
        help="a Kubernetes secret that containers see: VARIABLE=NAME/KEY, or /FOLDER=NAME; "
        "repeatable",
    )
    arguments.add_beam_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    recipe = loading.load_recipe(options.recipe, options.set)
    images = {}
    for item in options.component_image:
        component, separator, image = item.partition("=")
        if not separator or not component or not image:
            raise CommandError(
                "--component-image needs ID=IMAGE, for example Trainer=repository/image; got "
                f"'{item}'."
            )
        images[component] = image
    for option, number in (
        ("--trainer-gpus", options.trainer_gpus),
        ("--retries", options.retries),
    ):
        if number < 0:
            raise CommandError(f"{option} must be 0 or more; got {number}.")
    from pipeline.runners import kubeflow_runner

    settings = kubeflow_runner.ClusterSettings(
        pipeline_root=options.pipeline_root,
        image=options.image,
        component_images=images,
        gpu_count=options.trainer_gpus,
        gpu_type=options.gpu_type,
        resources=dict(map(kubeflow_runner.parse_resources, options.resources)),
        retries=options.retries,
        enable_cache=not options.no_cache,
        data_parameter=options.data_parameter,
        secrets=tuple(map(kubeflow_runner.parse_secret, options.secret)),
        beam_args=tuple(options.beam),
    )
    os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    output.check_writable(options.output)
    path = kubeflow_runner.compile_pipeline(recipe, options.output, options.data, settings)
    print(f"Wrote {path}")
    return 0
