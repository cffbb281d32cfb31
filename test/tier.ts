/** True for `HOLDFAST_TESTS=full`, which `./script/test --full` sets: run all combinations, and longer simulations. */
export const isFull: boolean = process.env.HOLDFAST_TESTS === 'full'
