use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(rule = "self.pools.all(pool, pool.sice > 0)"))]
struct Spec {
    pools: Vec<Pool>,
    #[koord(validate(rule = "self.size > 0 && self.nme != ''"))]
    first: Pool,
}

#[derive(Schema)]
struct Pool {
    size: i32,
    name: String,
}

fn main() {}
