"""`pbstream models`: the models of a router and their prices."""

from __future__ import annotations

import json

import click

from commands.cli.models_add import add_model
from commands.cli.models_import import import_models
from commands.cli.router_change import (
    change,
    changes,
    input_price,
    output_price,
    per_million,
    report,
    sure,
)
from commands.cli.suggesting import Suggesting
from doors.console.bus import open_bus
from doors.console.failures import Failure, first_model
from doors.console.output import console, print_json, table
from doors.console.router_status import Declared
from doors.console.session import Session, json_option, pass_session, router_option, run
from doors.console.taken_up import TOPICS, require_in_force
from ground.json_values import Document


@click.group(cls=Suggesting)
def models() -> None:
    """Add, reprice, remove and list the models of a router.

    \b
      pbstream models add large --input-price 1.25 --output-price 10
      pbstream models reprice large --input-price 0.6 --output-price 5
      pbstream models list

    Each change is one conditional write of the whole router, and returns when a worker has put it
    in force.
    """


@models.command()
@click.argument("name")
@input_price
@output_price
@sure
@changes
@pass_session
def reprice(
    session: Session,
    name: str,
    input_price: float,
    output_price: float,
    yes: bool,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Change a model's list prices from the next decision on; what the router has learned of the
    model stays.

    \b
      pbstream models reprice large --input-price 0.6 --output-price 5
    """
    input_price = per_million(input_price, option="--input-price", is_sure=yes)
    output_price = per_million(output_price, option="--output-price", is_sure=yes)

    def edit(document: Document) -> Document:
        model = _existing(document, name, router_id)
        prices = {"input_price_per_m": input_price, "output_price_per_m": output_price}
        return {**document, "models": {**document["models"], name: {**model, **prices}}}

    state = change(session, router_id, edit, timeout=timeout)
    report(
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

    state = change(session, router_id, edit, timeout=timeout)
    report(f"{name} left router {router_id}.", state, as_json)


@models.command("list")
@router_option
@json_option
@pass_session
def list_models(session: Session, router_id: str, as_json: bool) -> None:
    """Show the portfolio in force.

    \b
      pbstream models list --json
    """

    async def read() -> tuple[Declared, str | None]:
        async with open_bus(session.settings, *TOPICS) as bus:
            return await require_in_force(bus, router_id)

    found, note = run(read())
    document = found.document
    if note is not None:
        click.echo(f"Not shown: {note}", err=True)
    if as_json:
        print_json(document["models"])
        return
    if not document["models"]:
        click.echo(f"Router {router_id} has no model: {first_model(router_id)}.")
        return
    shown = table(
        "model",
        "$/M input",
        "$/M output",
        "prior",
        "onboarding pulls",
        "",
        title=f"Router {router_id}",
    )
    for name, model in document["models"].items():
        # As in the core: a model with a prior needs no onboarding.
        pulls = model.get("onboarding_pulls", 0 if model.get("prior") else 20)
        shown.add_row(
            name,
            f"{model['input_price_per_m']:g}",
            f"{model['output_price_per_m']:g}",
            _prior(model),
            str(pulls),
            "; ".join(_more(model)),
        )
    console().print(shown)


def _more(model: Document) -> list[str]:
    """Return what else is declared of a model, in words."""
    found = []
    if base := model.get("variant_of"):
        found.append(f"variant of {base}")
    if params := model.get("params"):
        found.append(json.dumps(params, ensure_ascii=False))
    tiers = model.get("price_above") or ()
    found += [f"other prices above {tier['input_tokens']:,} tokens" for tier in tiers]
    if at := model.get("retires_at"):
        found.append(f"retires on {at}")
    return found


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


models.add_command(add_model)
models.add_command(import_models)
