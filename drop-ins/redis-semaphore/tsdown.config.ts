import { dropIn } from '../build.ts'

export default dropIn
