//! What is tuned, and the facts about its kind of configuration. The folder `configuration` has the configurations.

mod kind;
mod scope;
mod tasks;

pub use self::{
    kind::Kind,
    scope::{Element, Scope},
    tasks::Task,
};
