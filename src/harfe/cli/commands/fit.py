"""`harfe fit`: fit a model to a table and save it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harfe._core.arguments import LINKS
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

_ABOUT = """\
Fit a model to a table and save it.

Text columns become categories; the law, size and kind of the model are chosen
by cross-validation. The printed error comes from rows that neither the fit nor
the choice of its settings has seen: each fold is predicted from the others
(--cv), or some rows are set aside first (--holdout).
"""

_EXAMPLES = """\
  harfe fit houses.csv --target price
  harfe fit houses.csv --target price --drop id,address --missing median
  harfe fit houses.csv --target -1 --holdout 0.2 -o houses.harfe --report houses.html
  harfe fit houses.csv --target price --fixed --size 30      (seconds, no search)
"""


def add(commands: Any) -> None:
    """Describe the command."""
    parser = command(commands, "fit", "fit a model to a table", _ABOUT, _EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("data", help="CSV (also .gz) or Parquet file; - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="model.harfe",
        help="model file to write (default model.harfe)",
    )
    parser.add_argument("--report", metavar="FILE", help="also write a report page, e.g. r.html")
    add_force(parser)
    add_column_options(parser)
    parser.add_argument("--weight", metavar="COLUMN", help="column with the weight of each row")
    group = parser.add_argument_group("how the error is measured")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--holdout",
        metavar="SHARE",
        type=_share,
        help="set this share of the rows aside, e.g. 0.2, and fit the others",
    )
    either.add_argument(
        "--cv",
        metavar="FOLDS",
        type=_folds,
        help="number of folds, each predicted from the others (default 5); the saved model is "
        "fitted to all rows",
    )
    _add_model_options(parser)
    add_file_options(parser)


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the model (chosen automatically unless given)")
    group.add_argument("--size", metavar="K", type=_count, help="number of features (sines) kept")
    group.add_argument(
        "--order", metavar="Q", type=_count, help="maximum number of inputs per feature, e.g. 2"
    )
    group.add_argument(
        "--activation",
        choices=[name for name, row in ACTIVATIONS.items() if not row.is_complex],
        help="function of each feature (default sin)",
    )
    group.add_argument(
        "--link",
        choices=LINKS,
        help="scale to fit on: log for positive targets, yeo-johnson for heavy tails (default: "
        "what predicts held-out rows best; none where settings are fixed); predictions stay in the "
        "units of the target",
    )
    group.add_argument(
        "--seed", type=_seed, default=0, help="the same seed gives the same model (default 0)"
    )
    group.add_argument(
        "--max-time",
        metavar="SECONDS",
        type=_positive,
        help="limit for the whole fit: the search is cut short",
    )
    group.add_argument(
        "--grid",
        action="store_true",
        help="try a grid of laws instead of learning which inputs and scales matter: faster",
    )
    group.add_argument("--jobs", metavar="N", type=int, help="threads for the search (default all)")
    group.add_argument("--quiet", action="store_true", help="print no progress and no summary")
    fixed = parser.add_argument_group("a single fit with fixed settings (no search)")
    fixed.add_argument(
        "--fixed", action="store_true", help="fit once; implied by the options below"
    )
    fixed.add_argument("--features", metavar="N", type=_count, help="number of features drawn")
    fixed.add_argument("--alpha", type=_positive, help="ridge penalty, e.g. 1e-3")
    fixed.add_argument("--scale", type=_positive, help="spread of the frequencies, e.g. 1")


def run(options: argparse.Namespace) -> int:
    """Read, fit, save, print."""
    if options.target is not None:
        _check_outputs(options)
    from harfe.tables import TableEncoder, TableModel, read_table

    frame = read_table(options.data, **file_settings(options))
    settings = column_settings(options, frame)
    if options.weight is not None:
        settings["drop"] = [*settings["drop"], options.weight]
    encoder = TableEncoder.learn(frame, **settings)
    for note in () if options.quiet else encoder.notes:
        say(f"note: {note}")
    model = TableModel.fit_with(
        encoder,
        frame,
        _make_estimator(options),
        weight=options.weight,
        holdout=options.holdout,
        seed=options.seed,
    )
    model.save(options.output)
    if not options.quiet:
        from harfe.cli.accounts import fit_account

        sys.stdout.write(fit_account(model, options.output) + "\n")
    if options.report:
        from harfe.report import write_report

        write_report(model, frame, None, options.report)
        if not options.quiet:
            sys.stdout.write(f"Report   {options.report}\n")
    return 0


def _check_outputs(options: argparse.Namespace) -> None:
    check_output(options.output, options.force)
    if options.report:
        check_output(options.report, options.force, "--report")
        if Path(options.report).absolute() == Path(options.output).absolute():
            raise CommandError("--report and -o name the same file: type two different names")


def _make_estimator(options: argparse.Namespace) -> Any:
    """Return the estimator that the options describe."""
    given: dict[str, Any] = {
        "activation": options.activation,
        "n_components": options.features,
        "link": options.link,
    }
    given = {name: value for name, value in given.items() if value is not None}
    fixed = {"alpha": options.alpha, "scale": options.scale}
    fixed = {name: value for name, value in fixed.items() if value is not None}
    if options.fixed or fixed or options.features is not None:
        from harfe.estimators.regressor import HARFERegressor
        from harfe.tables.judging import FOLDS

        if options.size is not None:
            fixed["n_nonzero_coefs"] = options.size
        if options.order is not None:
            fixed["order"] = tuple(range(1, options.order + 1))
        return HARFERegressor(
            **given,
            **fixed,
            residual_cv=options.cv or FOLDS,
            verbose=not options.quiet,
            random_state=options.seed,
        )
    from harfe.estimators.regressor_cv import HARFERegressorCV

    if options.size is not None:
        given["n_nonzero_coefs"] = [options.size]
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
    """Return settings that limit each feature to this many inputs."""
    if order <= 2 and not grid:
        return {"interaction_cst": "no_interactions" if order == 1 else "pairwise"}
    # A learned law supports only the limits 1 and 2; a grid takes any.
    return {"law": "grid", "orders": list(range(1, order + 1))}


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
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, type e.g. 0.2") from None


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
