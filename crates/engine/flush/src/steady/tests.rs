//! The policy action by action.
