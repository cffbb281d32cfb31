import { conform } from '../../../../test/harnesses/conform.ts'
import { dynamodbHarness } from '../../../../test/harnesses/dynamodb.ts'

conform(dynamodbHarness())
