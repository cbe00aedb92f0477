//! Plans of points and the runner that measures them
