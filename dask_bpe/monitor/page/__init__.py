"""The page /dask-bpe of Dask's dashboard.

document    what a browser gets: the job that it asks for, brought up to date every second
panels      the parts in words and numbers, as HTML
plots       the curves
style       colours and sizes, for dark and light, wide and narrow
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bokeh.server.tornado import BokehTornado
from distributed.dashboard.core import BokehApplication
from distributed.dashboard.scheduler import template_variables
from tornado.ioloop import IOLoop

from dask_bpe.monitor.page.document import show_jobs

if TYPE_CHECKING:
    from dask_bpe.monitor.plugin import JobPlugin

NAME = "dask-bpe"


def add_page(scheduler: Any, plugin: JobPlugin) -> None:
    """Add the page to the dashboard of a scheduler that has one, and a link to its navigation."""
    dashboard = next(app for app in scheduler.http_application.applications if isinstance(app, BokehTornado))
    # All pages of the dashboard share this dictionary, so that the link is in all of them.
    variables = template_variables(scheduler)
    if NAME not in variables["pages"]:
        variables["pages"].insert(1, NAME)
    application = BokehApplication(
        {f"/{NAME}": partial(_show, plugin)}, scheduler, prefix=dashboard.prefix, template_variables=variables
    )
    scheduler.http_application.add_application(application)
    application.initialize(IOLoop.current())
    application.start()


def _show(plugin: JobPlugin, _: Any, variables: dict[str, Any], document: Any) -> None:
    show_jobs(plugin, variables, document)
