//! Pages in a real browser: the status page of the server, and the page of a ranking.

mod chromium;
mod looks;
mod report;
mod status_page;
