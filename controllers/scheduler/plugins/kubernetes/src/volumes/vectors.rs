//! The cases of kube-scheduler's own table tests of these plugins: `docs/reference/scheduler-cases.md` lists which table is held by which test.

mod binding;
mod limits;
mod restrictions;
mod zones;
