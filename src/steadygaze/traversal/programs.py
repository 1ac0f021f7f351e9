"""Small linear programs by HiGHS, counted; trouble is retried with other scaling before it is reported."""

from dataclasses import dataclass, field

import highspy
import numpy as np

from ..tolerances import FEASIBILITY

_PLAIN: dict[str, str | int] = {"presolve": "off", "solver": "simplex", "simplex_scale_strategy": 0}
_RETRIES: tuple[dict[str, str | int], ...] = (
    {"simplex_scale_strategy": 4},
    {"presolve": "on", "simplex_scale_strategy": 2},
    {"presolve": "on", "solver": "ipm"},
)


class LinearProgramTroubleError(Exception):
    """HiGHS gave neither a solution nor a proof that there is none, whatever the scaling."""


@dataclass
class Programs:
    """A solver with its counts: programs solved, and those without an answer."""

    solved: int = 0
    failures: int = 0
    _solver: highspy.Highs = field(default_factory=highspy.Highs, repr=False)

    def __post_init__(self) -> None:
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, FEASIBILITY)

    def maximise(
        self, cost: np.ndarray, rows: np.ndarray, lower: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray | None:
        """The x (n,) with low ≤ x ≤ high and rows @ x ≥ lower that makes cost @ x largest; None if there is no x.

        Raises LinearProgramTroubleError, after several attempts with other scaling.
        """
        self.solved += 1
        program = _program(cost, rows, lower, low, high)
        for options in (_PLAIN, *_RETRIES):
            for name, value in (_PLAIN | options).items():
                self._solver.setOptionValue(name, value)
            self._solver.clearSolver()
            self._solver.passModel(program)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return np.array(self._solver.getSolution().col_value)
            if status == highspy.HighsModelStatus.kInfeasible:
                return None
        raise self.trouble(f"HiGHS: {self._solver.modelStatusToString(status)}")

    def trouble(self, what: str) -> LinearProgramTroubleError:
        """Count a program without a usable answer; returns the error to raise."""
        self.failures += 1
        return LinearProgramTroubleError(what)


def _program(
    cost: np.ndarray, rows: np.ndarray, lower: np.ndarray, low: np.ndarray, high: np.ndarray
) -> highspy.HighsLp:
    count, width = rows.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = width, count
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
    program.row_lower_, program.row_upper_ = lower, np.full(count, highspy.kHighsInf)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.arange(0, count * width + 1, width)
    program.a_matrix_.index_ = np.tile(np.arange(width), count)
    program.a_matrix_.value_ = rows.ravel()
    program.sense_ = highspy.ObjSense.kMaximize
    return program
