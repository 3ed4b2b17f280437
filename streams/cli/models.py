"""`pbstream models`: who is in the portfolio, at which prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schemas import LambdaUpdated
from schemas.json_values import Document
from streams.cli.models_import import import_models
from streams.console.bus import open_bus
from streams.console.declarations import TOPICS, Edit, read_router, write_router
from streams.console.failures import Failure, NoRouter
from streams.console.output import console, print_json, table
from streams.console.session import (
    F,
    Session,
    json_option,
    pass_session,
    router_option,
    run,
    timeout_option,
)

if TYPE_CHECKING:
    from streams.settings import Settings

SHA256 = 64
"""Digits of a checksum."""
PRICE = click.FloatRange(min=0, max=1e6)
input_price = click.option(
    "--input-price",
    type=PRICE,
    required=True,
    metavar="USD",
    help="List price per million input tokens.",
)
output_price = click.option(
    "--output-price",
    type=PRICE,
    required=True,
    metavar="USD",
    help="List price per million output tokens.",
)


@click.group()
def models() -> None:
    """Add, reprice, remove and list the models of a router.

    \b
      pbstream models add large --input-price 1.25 --output-price 10
      pbstream models reprice large --input-price 0.6 --output-price 5
      pbstream models list

    Each change is one conditional write of the whole router, and returns when a worker has put it
    in force.
    """


def _name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise click.BadParameter(f"{value!r} is no name of a model: 1 to 200 printable characters")
    return value


def changes(function: F) -> F:
    """Give a command the options of a change."""
    for option in (json_option, timeout_option, router_option):
        function = option(function)
    return function


@models.command()
@click.argument("name", callback=_name)
@input_price
@output_price
@click.option(
    "--prior",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that `pbstream fit` wrote.",
)
@click.option(
    "--projection",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Of a router that this creates: a folder that `pbstream fit` wrote; default: the "
    "prior's, where prompts become other contexts here.",
)
@click.option("--like", metavar="MODEL", help="Start from what is known of this model.")
@click.option(
    "--n-eff",
    type=click.FloatRange(min=0, min_open=True),
    help="How many observations the prior counts for.",
)
@click.option(
    "--onboarding-pulls",
    type=click.IntRange(0, 10_000),
    help="Requests sent to it as it joins; default: 20 without a prior.",
)
@click.option(
    "--expected-cost",
    type=click.FloatRange(0, 1000),
    help="$ that a request to it costs on average, if you know.",
)
@click.option(
    "--dimensions",
    type=click.IntRange(2),
    help="Of a router that this creates; default: what prompts become here.",
)
@click.option(
    "--profile",
    type=click.Choice(["live", "paper"]),
    help="Of a router that this creates; default live.",
)
@changes
@pass_session
def add(
    session: Session,
    name: str,
    input_price: float,
    output_price: float,
    prior: Path | None,
    projection: Path | None,
    like: str | None,
    n_eff: float | None,
    onboarding_pulls: int | None,
    expected_cost: float | None,
    dimensions: int | None,
    profile: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Add a model; the first one creates the router.

    Its prompts become contexts by the projection that is fitted beside the prior, or by
    --projection: the workers find that folder by its name in PB_PRIORS_PATH. Without either, by
    the workers' own (PB_PROJECTION_PATH).

    Without a prior it gets its first requests whatever its score (onboarding), so that something is
    learned of it.

    \b
      pbstream models add small --input-price 0.1 --output-price 0.4
      pbstream models add large --input-price 1.25 --output-price 10 --prior priors/chat --n-eff 500
      pbstream models add large-v2 --input-price 1 --output-price 8 --like large
    """
    if prior is not None and like is not None:
        raise click.UsageError(
            "--prior and --like exclude each other: a model starts from one of them."
        )
    if n_eff is not None and prior is None and like is None:
        raise click.UsageError(
            "--n-eff says how much a prior counts: give --prior or --like as well."
        )
    model: Document = {"input_price_per_m": input_price, "output_price_per_m": output_price}
    if prior is not None:
        model |= _from_folder(prior, name)
    if like is not None:
        model["prior"] = {"like": like}
    if n_eff is not None:
        if "prior" not in model:
            raise Failure(
                f"{prior} knows costs of {name!r} only: --n-eff says how much rewards count."
            )
        model["prior"]["n_eff"] = n_eff
    if onboarding_pulls is not None:
        model["onboarding_pulls"] = onboarding_pulls
    if expected_cost is not None:
        model["expected_cost_usd"] = expected_cost
    chosen = {
        key: value
        for key, value in (
            ("dimensions", dimensions),
            ("profile", profile),
            ("projection", projection and reference_to(projection)),
        )
        if value is not None
    }
    fitted_in = None if prior is None else _fitted_in(prior)

    def edit(document: Document) -> Document:
        created = (
            chosen
            if document["models"]
            else {**_contexts(session.settings, prior, projection), **chosen}
        )
        declared = {**document, **created}.get("projection")
        if declared is not None and fitted_in not in (None, declared["sha256"]):
            raise Failure(
                f"{prior} was fitted with another projection than router {router_id!r} has: its "
                "numbers mean something else there."
            )
        if name in document["models"]:
            raise Failure(
                f"{name!r} is in router {router_id!r} already: change its prices with `pbstream "
                "models reprice`."
            )
        if document["models"] and any(
            document.get(key, value) != value for key, value in created.items()
        ):
            raise Failure(
                f"router {router_id!r} exists with other --dimensions, --profile or --projection, "
                "which are chosen when it is created."
            )
        written.update({**document, **created, "models": {**document["models"], name: model}})
        return written

    written: Document = {}
    state = _change(session, router_id, edit, timeout=timeout, create=True)
    _report(f"{name} joined router {router_id}.", state, as_json)
    if "projection" not in written and (note := _mismatch(session.settings, model)) is not None:
        click.echo(note, err=True)


@models.command()
@click.argument("name")
@input_price
@output_price
@changes
@pass_session
def reprice(
    session: Session,
    name: str,
    input_price: float,
    output_price: float,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Change a model's list prices from the next decision on; what was learned of it stays.

    \b
      pbstream models reprice large --input-price 0.6 --output-price 5
    """

    def edit(document: Document) -> Document:
        model = _existing(document, name, router_id)
        prices = {"input_price_per_m": input_price, "output_price_per_m": output_price}
        return {**document, "models": {**document["models"], name: {**model, **prices}}}

    state = _change(session, router_id, edit, timeout=timeout)
    _report(
        f"{name} costs ${input_price:g} in, ${output_price:g} out per million tokens now.",
        state,
        as_json,
    )


@models.command()
@click.argument("name")
@changes
@pass_session
def remove(session: Session, name: str, router_id: str, timeout: float, as_json: bool) -> None:
    """Retire a model: no new requests go to it; bills and rewards in flight still count.

    \b
      pbstream models remove large
    """

    def edit(document: Document) -> Document:
        _existing(document, name, router_id)
        return {
            **document,
            "models": {key: model for key, model in document["models"].items() if key != name},
        }

    state = _change(session, router_id, edit, timeout=timeout)
    _report(f"{name} left router {router_id}.", state, as_json)


@models.command("list")
@router_option
@json_option
@pass_session
def list_models(session: Session, router_id: str, as_json: bool) -> None:
    """Show the portfolio in force.

    \b
      pbstream models list --json
    """

    async def read() -> Document:
        async with open_bus(session.settings, *TOPICS) as bus:
            declared = await read_router(bus, router_id)
        if declared is None:
            raise NoRouter(router_id)
        return declared.document

    document = run(read())
    if as_json:
        print_json(document["models"])
        return
    shown = table(
        "model", "$/M input", "$/M output", "prior", "onboarding pulls", title=f"Router {router_id}"
    )
    for name, model in document["models"].items():
        pulls = model.get("onboarding_pulls", 0 if model.get("prior") else 20)
        shown.add_row(
            name,
            f"{model['input_price_per_m']:g}",
            f"{model['output_price_per_m']:g}",
            _prior(model),
            str(pulls),
        )
    console().print(shown)


def _of_prior(model: Document) -> int | None:
    """Return how many dimensions a model's prior has, None without arrays."""
    prior = model.get("prior") or {}
    return len(prior["b"]) if "b" in prior else None


def _mismatch(settings: Settings, model: Document) -> str | None:
    """Return what to say where the prior is for other contexts than prompts become with these
    settings.
    """
    from streams.encoder.load import dimensions_of

    wanted = _of_prior(model)
    if (
        wanted is None
        or settings.encoder_backend == "none"
        or (here := dimensions_of(settings)) == wanted
    ):
        return None
    return (
        f"This prior has {wanted} dimensions; prompts become {here} here. The workers need the "
        "projection that was fitted with it: "
        "PB_PROJECTION_PATH=FOLDER pbstream worker"
    )


def reference_to(folder: Path) -> Document:
    """Return how a declaration refers to the projection in a folder that `pbstream fit` wrote."""
    from streams.encoder.projection import Projection

    return {"ref": folder.resolve().name, "sha256": Projection.load(folder).checksum}


def _fitted_in(prior: Path) -> str | None:
    """Return the checksum of the projection in whose coordinates a folder's priors are; None where
    they are of a history, whose contexts may have been given.
    """
    from streams.warm_start.priors import load_priors

    made_by = load_priors(prior).projection
    return made_by if len(made_by) == SHA256 and " " not in made_by else None


def _contexts(settings: Settings, prior: Path | None, projection: Path | None) -> Document:
    """Return what a new router declares of its contexts: how many numbers, and the projection of
    the prior where prompts become other contexts with these settings.
    """
    from streams.encoder.load import projection_of
    from streams.encoder.projection import Projection
    from streams.warm_start.priors import load_priors

    takes_prompts = settings.encoder_backend != "none"
    if projection is not None:
        return {"dimensions": Projection.load(projection).dimensions}
    if prior is None:
        return {"dimensions": projection_of(settings).dimensions if takes_prompts else 26}
    if takes_prompts and _fitted_in(prior) not in (None, projection_of(settings).checksum):
        return {"dimensions": Projection.load(prior).dimensions, "projection": reference_to(prior)}
    return {"dimensions": load_priors(prior).dimensions}


def _from_folder(folder: Path, model: str) -> Document:
    from streams.warm_start.priors import fields_for_wire, load_priors

    return fields_for_wire(load_priors(folder), model)


def _prior(model: Document) -> str:
    prior = model.get("prior") or {}
    kind = (
        f"like {prior['like']}"
        if "like" in prior
        else "file"
        if "ref" in prior
        else "inline"
        if prior
        else "none"
    )
    return f"{kind}, n_eff {prior['n_eff']:g}" if prior.get("n_eff") else kind


def _existing(document: Document, name: str, router_id: str) -> Document:
    model: Document | None = document["models"].get(name)
    if model is None:
        known = ", ".join(document["models"]) or "none"
        raise Failure(f"{name!r} is not in router {router_id!r}; its models: {known}.")
    return model


def _change(
    session: Session, router_id: str, edit: Edit, *, timeout: float, create: bool = False
) -> LambdaUpdated:
    async def write() -> LambdaUpdated:
        async with open_bus(session.settings, *TOPICS) as bus:
            return await write_router(bus, router_id, edit, seconds=timeout, create=create)

    return run(write())


def _report(sentence: str, state: LambdaUpdated, as_json: bool) -> None:
    if as_json:
        print_json(state)
    else:
        click.echo(f"{sentence} In force at offset {state.config_offset}.")


models.add_command(import_models)
