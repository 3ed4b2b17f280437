"""`pbstream models add`: add a model, or create a router with its first one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import click

from commands.cli.model_prior import (
    contexts_of,
    fitted_in,
    mismatch,
    prior_from,
    projection_in,
    reference_to,
)
from commands.cli.router_change import (
    change,
    changes,
    field_of,
    input_price,
    output_price,
    per_million,
    price_checked,
    report,
    require_router,
    sure,
)
from doors.console.failures import Failure
from doors.console.router_file import put
from doors.console.session import Session, named, pass_session
from doors.integrations.price_notes import deprecation
from ground.json_values import Document, Json


def _name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not 1 <= len(value) <= 200 or not value.isprintable():
        raise click.BadParameter(f"{value!r} is not a model name: 1 to 200 printable characters")
    return value


def _params(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Document | None:
    if value is None:
        return None
    try:
        found = json.loads(value, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{value[:50]!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"{value[:50]!r} is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Json]]) -> Document:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _date(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    found, unread = deprecation(value)
    if found is None or unread is not None:
        raise click.BadParameter(f"{value!r} is not a date: write it as 2027-03-31")
    return found.isoformat()


@click.command("add")
@click.argument("name", callback=_name)
@input_price
@output_price
@sure
@click.option(
    "--prior",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder that `pbstream fit` wrote, with the model's prior.",
)
@click.option(
    "--projection",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Projection of a new router: a folder of `pbstream fit`; default: the "
    "prior's, unless it is that of the settings.",
)
@click.option("--like", metavar="MODEL", help="Start from what is known of this model.")
@click.option(
    "--variant-of",
    metavar="MODEL",
    help="The model that this one is a variant of: called in its place, with --params.",
)
@click.option(
    "--params",
    metavar="JSON",
    callback=_params,
    help='JSON object that goes with each call, such as \'{"reasoning_effort": "high"}\'.',
)
@click.option(
    "--retires-at",
    metavar="DATE",
    callback=_date,
    help="When its provider retires it; an alert comes two weeks before.",
)
@click.option(
    "--n-eff",
    type=click.FloatRange(min=0, min_open=True),
    help="Number of observations that the prior counts for.",
)
@click.option(
    "--onboarding-pulls",
    type=click.IntRange(0, 10_000),
    help="Requests sent to the model when it joins; default: 20 without a prior.",
)
@click.option(
    "--expected-cost",
    type=click.FloatRange(0, 1000),
    help="Mean cost of a request to the model in dollars, if you know it.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Any other field of the model, such as cached_input_price_per_m or offers.tools; may be "
    "given several times.",
)
@click.option(
    "--dimensions",
    type=click.IntRange(2),
    help="Dimensions of a new router's contexts; default: those that the settings give prompts.",
)
@click.option(
    "--profile",
    type=click.Choice(["live", "paper"]),
    help="Profile of a new router; default: live.",
)
@changes
@pass_session
def add_model(
    session: Session,
    name: str,
    input_price: float,
    output_price: float,
    yes: bool,
    prior: Path | None,
    projection: Path | None,
    like: str | None,
    variant_of: str | None,
    params: Document | None,
    retires_at: str | None,
    n_eff: float | None,
    onboarding_pulls: int | None,
    expected_cost: float | None,
    fields: tuple[str, ...],
    dimensions: int | None,
    profile: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Add a model; the first one creates the router.

    A projection turns the router's prompts into contexts. A prior brings the projection that was
    fitted with it; --projection names another one. Without both, workers use their own projection
    (PB_PROJECTION_PATH). Workers find the folder of a prior or a projection in PB_PRIORS_PATH.

    A model without a prior gets its first requests whatever its score (onboarding). So the router
    learns about the model.

    \b
      pbstream models add small --input-price 0.1 --output-price 0.4
      pbstream models add large --input-price 1.25 --output-price 10 --prior priors/chat --n-eff 500

    A model can start from what is known of another one, also as its variant.

    \b
      pbstream models add large-v2 --input-price 1 --output-price 8 --like large
      pbstream models add large-low --input-price 1 --output-price 8 --variant-of large \\
        --params '{"reasoning_effort": "low"}' --like large

    Every other field of a declaration has its name.

    \b
      pbstream models add eyes --input-price 1 --output-price 4 --field offers.vision=true
      pbstream models add long --input-price 1 --output-price 4 --field cached_input_price_per_m=0.1
    """
    if prior is not None and like is not None:
        raise click.UsageError(
            "--prior and --like exclude each other: a model starts from one of them."
        )
    if n_eff is not None and prior is None and like is None:
        raise click.UsageError(
            "--n-eff says how much a prior counts: give --prior or --like as well."
        )
    model: Document = {
        "input_price_per_m": per_million(input_price, option="--input-price", is_sure=yes),
        "output_price_per_m": per_million(output_price, option="--output-price", is_sure=yes),
    }
    if prior is not None:
        model |= prior_from(prior, name)
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
    said = {"variant_of": variant_of, "params": params, "retires_at": retires_at}
    model |= {field: value for field, value in said.items() if value is not None}
    for path, value in map(field_of, fields):
        put(model, path, price_checked(path, value, is_sure=yes))
    chosen = {
        key: value
        for key, value in (
            ("dimensions", dimensions),
            ("profile", profile),
            ("projection", projection and reference_to(projection)),
        )
        if value is not None
    }
    made_by = None if prior is None else fitted_in(prior)

    def edit(document: Document) -> Document:
        created = (
            chosen
            if document["models"]
            else {**contexts_of(session.settings, prior, projection), **chosen}
        )
        # Checked inside the edit, on the declaration in force at the write: it may have changed
        # since the command began.
        has = projection_in({**document, **created}, session.settings)
        if made_by is not None and has is not None and made_by != has:
            raise Failure(
                f"{prior} was fitted with another projection than router {router_id!r} has: its "
                "numbers mean something else there. A new router gets the prior's projection "
                "(--router NEW)."
            )
        if name in document["models"]:
            raise Failure(
                f"{name!r} is in router {router_id!r} already: `pbstream models reprice "
                f"{name}{named(router_id)}` changes its prices."
            )
        if document["models"] and any(
            document.get(key, value) != value for key, value in created.items()
        ):
            raise Failure(
                f"router {router_id!r} exists with other --dimensions, --profile or --projection, "
                "which are chosen when it is created."
            )
        # Taken from the last edit: an edit is repeated when somebody else was faster.
        written.update({**document, **created, "models": {**document["models"], name: model}})
        require_router(written)
        return written

    written: Document = {}
    state = change(session, router_id, edit, timeout=timeout, create=True)
    report(f"{name} joined router {router_id}.", state, as_json)
    if "projection" not in written and (note := mismatch(session.settings, model)) is not None:
        click.echo(note, err=True)
