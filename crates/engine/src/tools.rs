//! What the model can call.

pub mod arguments;
pub mod names;
pub mod schema;
