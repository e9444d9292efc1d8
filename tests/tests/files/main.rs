//! What the repository holds: modules and files that are read, pages, and what files use of each other.

mod module_circles;
mod pages;
mod reading;
