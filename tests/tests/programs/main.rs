//! The programs as people start them, and servers beside browsers, proxies, Prometheus and load.

mod browser;
mod command_line;
mod prometheus;
mod security;
mod server_program;
mod under_load;
