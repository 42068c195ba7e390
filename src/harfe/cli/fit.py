"""`harfe fit`: from a table to a model file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harfe.cli.common import (
    CommandError,
    add_column_options,
    add_file_options,
    add_force,
    check_output,
    column_settings,
    command,
    file_settings,
    say,
)
from harfe.features.activations import ACTIVATIONS

if TYPE_CHECKING:
    from harfe.tables import TrainingRows

FOLDS = 5

_ABOUT = """\
Fit a model to a table and save it.

Texts become categories; law, size and kind of the model are chosen by
cross-validation on the rows. What is printed as error is honest: it comes from
rows that neither the fit nor the choice of its settings has seen (--cv), or
from rows that are set aside first (--holdout).
"""

_EXAMPLES = """\
  harfe fit houses.csv --target price
  harfe fit houses.csv --target price --drop id,address --missing median
  harfe fit houses.csv --target -1 --holdout 0.2 -o houses.harfe --report houses.html
  harfe fit houses.csv --target price --fixed --terms 30      (seconds, nothing is chosen)
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "fit", "fit a model to a table", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("data", help="CSV (also .gz) or Parquet file; - for standard input")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="model.harfe", help="default: model.harfe"
    )
    parser.add_argument("--report", metavar="FILE", help="also write a report page, e.g. r.html")
    add_force(parser)
    add_column_options(parser)
    parser.add_argument("--weight", metavar="COLUMN", help="how often each row counts")
    group = parser.add_argument_group("how the error is measured")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--holdout",
        metavar="SHARE",
        type=_share,
        help="set this share of the rows aside, e.g. 0.2; the model is fitted to the others",
    )
    either.add_argument(
        "--cv",
        metavar="FOLDS",
        type=_folds,
        help="predict each of so many folds from the others (default 5); all rows are fitted",
    )
    add_model_options(parser)
    add_file_options(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Offer settings of the model."""
    group = parser.add_argument_group("the model (chosen unless given)")
    group.add_argument("--terms", metavar="K", type=_count, help="number of sines")
    group.add_argument(
        "--order", metavar="Q", type=_count, help="inputs that a sine may join at most, e.g. 2"
    )
    real = [name for name, row in ACTIVATIONS.items() if not row.is_complex]
    group.add_argument("--activation", choices=real)
    group.add_argument("--seed", type=_seed, default=0, help="equal seeds give equal models")
    group.add_argument("--max-time", metavar="SECONDS", type=_positive, help="stop choosing then")
    group.add_argument(
        "--grid", action="store_true", help="do not learn which inputs and scales matter: quicker"
    )
    group.add_argument("--jobs", metavar="N", type=int, help="processes, for small tables")
    group.add_argument("--quiet", action="store_true", help="no progress, no account")
    fixed = parser.add_argument_group("one fit with fixed settings (nothing is chosen)")
    fixed.add_argument("--fixed", action="store_true", help="implied by those below")
    fixed.add_argument("--features", metavar="N", type=_count, help="random features drawn")
    fixed.add_argument("--alpha", type=_positive, help="ridge weight, e.g. 1e-3")
    fixed.add_argument("--scale", type=_positive, help="spread of the frequencies, e.g. 1")


def run(options: argparse.Namespace) -> int:
    """Read, fit, measure, save, tell."""
    if options.target is not None:
        _check_outputs(options)
    from harfe.tables import (
        TableEncoder,
        TableModel,
        fingerprint,
        name_inputs,
        read_table,
        training_rows,
    )

    frame = read_table(options.data, **file_settings(options))
    settings = column_settings(options, frame)
    if options.weight is not None:
        settings["drop"] = [*settings["drop"], options.weight]
    encoder = TableEncoder.learn(frame, **settings)
    if not options.quiet:
        for note in encoder.notes:
            say(f"note: {note}")
    rows = training_rows(encoder, frame, options.weight)
    fitted, held_out = split(rows, options.holdout, options.seed)
    _check_rows(fitted, options)
    estimator = make_estimator(options)
    estimator.fit(fitted.X, fitted.y, sample_weight=fitted.weights)
    name_inputs(estimator, encoder.columns_out)
    from harfe.cli.accounts import fit_account, measured

    meta = {
        "target": encoder.target,
        "source": "standard input" if options.data == "-" else Path(options.data).name,
        "rows": len(fitted.y),
        "table_rows": len(frame),
        "fingerprint": fingerprint(frame),
        "seed": options.seed,
        "weight": options.weight,
        "notes": list(encoder.notes),
        "error": measured(estimator, fitted, held_out, options.holdout, options.cv or FOLDS),
    }
    model = TableModel(encoder, estimator, meta)
    model.save(options.output)
    if not options.quiet:
        sys.stdout.write(fit_account(model, options.output) + "\n")
    if options.report:
        write_page(model, fitted, held_out, options.report)
        if not options.quiet:
            sys.stdout.write(f"Report   {options.report}\n")
    return 0


def _check_outputs(options: argparse.Namespace) -> None:
    check_output(options.output, options.force)
    if options.report:
        check_output(options.report, options.force, "--report")
        if Path(options.report).absolute() == Path(options.output).absolute():
            raise CommandError("--report and -o name the same file: type two different names")


def split(
    rows: TrainingRows, share: float | None, seed: int
) -> tuple[TrainingRows, TrainingRows | None]:
    """Set rows aside; the same ones for the same table, share and seed."""
    if share is None:
        return rows, None
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(rows.y))
    count = round(share * len(order))
    if not 1 <= count <= len(order) - 2:
        raise CommandError(
            f"--holdout {share:g} sets {count} of {len(order)} rows aside: type a share that "
            "leaves at least 2 rows to fit and 1 to test, or use --cv 5"
        )
    return _taken(rows, np.sort(order[count:])), _taken(rows, np.sort(order[:count]))


def _taken(rows: TrainingRows, places: Any) -> TrainingRows:
    from harfe.tables import TrainingRows

    weights = None if rows.weights is None else rows.weights[places]
    return TrainingRows(rows.X[places], rows.y[places], weights, rows.kept[places])


def make_estimator(options: argparse.Namespace) -> Any:
    """The estimator that the options describe."""
    given = {"activation": options.activation, "n_components": options.features}
    given = {name: value for name, value in given.items() if value is not None}
    fixed = {"alpha": options.alpha, "scale": options.scale}
    fixed = {name: value for name, value in fixed.items() if value is not None}
    if options.fixed or fixed or options.features is not None:
        from harfe.estimators.regressor import HARFERegressor

        if options.terms is not None:
            fixed["n_nonzero_coefs"] = options.terms
        if options.order is not None:
            fixed["order"] = tuple(range(1, options.order + 1))
        return HARFERegressor(
            **given, **fixed, residual_cv=options.cv or FOLDS, random_state=options.seed
        )
    from harfe.estimators.regressor_cv import HARFERegressorCV

    if options.terms is not None:
        given["n_nonzero_coefs"] = [options.terms]
    if options.grid:
        given["law"] = "grid"
    if options.order is not None:
        given |= _at_most(options.order, options.grid)
    return HARFERegressorCV(
        **given,
        cv=options.cv,
        max_time=options.max_time,
        n_jobs=options.jobs,
        verbose=not options.quiet,
        random_state=options.seed,
    )


def _at_most(order: int, grid: bool) -> dict[str, Any]:
    """Settings under which no feature joins more inputs."""
    if order <= 2 and not grid:
        return {"interaction_cst": "no_interactions" if order == 1 else "pairwise"}
    # A learned law knows these two bounds only; a grid takes any.
    return {"law": "grid", "orders": list(range(1, order + 1))}


def _check_rows(rows: TrainingRows, options: argparse.Namespace) -> None:
    folds = options.cv or FOLDS
    if len(rows.y) < 2 * folds:
        raise CommandError(
            f"{len(rows.y)} rows are too few for {folds} folds: add rows, or type --cv 2"
            if len(rows.y) >= 4
            else f"{len(rows.y)} rows are too few to learn from: add rows"
        )
    if not rows.y.max() > rows.y.min():
        raise CommandError(
            f"the target is {rows.y[0]:g} in every row, there is nothing to learn: type --target "
            "and another column"
        )


def write_page(
    model: Any, rows: TrainingRows, held_out: TrainingRows | None, path: str | os.PathLike[str]
) -> None:
    """Write the report page of a model."""
    from harfe.report import write_report

    plain = {k: v for k, v in model.meta.items() if k not in ("error", "notes", "target")}
    write_report(
        model,
        rows.X,
        rows.y,
        path,
        sample_weight=rows.weights,
        X_holdout=None if held_out is None else held_out.X,
        y_holdout=None if held_out is None else held_out.y,
        target_name=str(model.encoder.target or "y"),
        meta={name: value for name, value in plain.items() if value is not None},
    )


def _share(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be between 0 and 1, e.g. 0.2")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number, type e.g. 0.2") from None


def _whole(text: str, least: int, example: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a whole number of at least {least}, e.g. {example}"
        )
    return int(text)


def _count(text: str) -> int:
    return _whole(text, 1, 2)


def _folds(text: str) -> int:
    return _whole(text, 2, 5)


def _seed(text: str) -> int:
    return _whole(text, 0, 0)
