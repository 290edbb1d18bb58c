"""Who would get what: the operator's own decisions, taken one after the other on objects that are only given, and written nowhere.

`Given` takes raw objects, as files or an API server have them; `simulate` has `placement` decide for every pod and claim that waits, each seeing
what those before it took; `Supposing` changes what is given before (a node more, a device less); `written` gives the claims and pods as they would be afterwards. Pure: nothing is read, written, or timed here.
"""

from .given import Given
from .outcomes import Outcome, Report
from .run import simulate
from .supposing import Supposing
from .workloads import pods_of
from .written import written

__all__ = ["Given", "Outcome", "Report", "Supposing", "pods_of", "simulate", "written"]
