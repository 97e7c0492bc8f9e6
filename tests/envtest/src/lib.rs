//! envtest
